"""Results that people have named: found, opened, exported, read as files. Which dialect made them does not matter."""
