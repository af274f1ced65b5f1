"""Small programs that stand alone, each with a function `show` that says what it found: for docs and for the story."""
