"""Answers into claims: sentences, clauses, a model's claims and what the rules say of them."""
