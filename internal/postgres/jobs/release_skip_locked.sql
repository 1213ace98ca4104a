-- release.sql for the rows that no other program has locked.
{release_held} SKIP LOCKED
),
{release_written}
