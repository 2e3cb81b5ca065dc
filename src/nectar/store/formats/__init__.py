"""How values become files and come back: tables as Arrow IPC files, any other object as pickle."""
