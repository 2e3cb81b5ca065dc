"""What a computation does that its code does not show: files, network, processes, settings; seen while it runs."""
