"""Programs as trees of operators, the same for every engine. No I/O."""
