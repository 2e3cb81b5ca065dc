"""Recipes: everything that is needed to make a result again, kept for ever, and the running of them."""
