"""A local AWS that really runs tasks and really fires schedules. See README.md beside this package."""
