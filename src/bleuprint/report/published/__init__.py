"""Published scores, shown beside ours."""
