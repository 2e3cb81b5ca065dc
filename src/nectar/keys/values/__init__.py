"""How values of each library are taken apart, one module per kind."""
