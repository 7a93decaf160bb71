"""The view-model of the bench lab."""
