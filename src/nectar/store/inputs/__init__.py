"""The files and URLs that programs read, and how they are known again. Start with identify.py."""
