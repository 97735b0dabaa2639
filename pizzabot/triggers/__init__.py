"""What starts work by itself: schedules, what is due, what was missed."""
