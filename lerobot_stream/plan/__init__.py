"""Which frames each worker delivers, in which order: pure functions of plain arrays."""
