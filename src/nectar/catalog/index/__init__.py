"""Where the catalog keeps its rows. base.py says what every index does; sqlite.py is the embedded one."""
