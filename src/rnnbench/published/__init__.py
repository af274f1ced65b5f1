"""What exists only for the tables published in 2018 and 2019: their rows, their claims, and audits of tables."""
