"""The same thing over time, from kept measurements."""
