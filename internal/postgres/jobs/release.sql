-- Releases leased rows and gives their unread reads back to the day's quota.
-- Returns what settle.sql does.
{release_held}
),
{release_written}
