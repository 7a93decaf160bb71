"""Routes of public model ids: kept, looked at, and moved after real requests have shown that it works."""
