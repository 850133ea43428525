"""How a recurrence is written down as Scan or Loop: one way a file."""
