"""What makes a function uncacheable: tables of what is known of libraries, and the analysis that asks them."""
