"""Our host on another machine: installed, updated, taken back, removed."""
