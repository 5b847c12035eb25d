"""The proof that conchart is right; mirrors the package, plus laws, agreement, benchmarks and captures."""
