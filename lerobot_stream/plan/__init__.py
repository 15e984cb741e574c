"""Which frames come when: pure decisions over plain arrays."""
