"""Recipes: what is needed to make a result again, kept as long as somebody can need it, and the running of it."""
