"""What exists only for the published tables (Braun 2018, Carrot 2019): rows, claims, and audits of tables."""
