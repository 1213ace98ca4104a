-- The reads taken from today's quota. The day's first claim makes its row.
coalesce((SELECT reads FROM read_budget WHERE day = {today}), 0)
