"""What a run did, for people."""
