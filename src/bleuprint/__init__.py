"""bleuprint: from raw parallel text to a table of BLEU scores that anyone can reproduce."""
