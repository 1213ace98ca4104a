-- The columns of the product's tables in their order. The check of what exists
-- and the step that adds what is missing both read this list. A new column needs
-- a line here and a file in steps/. On video_jobs each column is nullable or has a
-- constant default, so that older writers keep working and no row is rewritten.
-- The three columns that users have already are not in the list.
VALUES
    (1,  'video_submissions', 'idempotency_key',    'text',                     true,  NULL),
    (2,  'video_submissions', 'request',            'json',                     true,  NULL), -- json, not jsonb: a second post sends the same text verbatim
    (3,  'video_submissions', 'job_id',             'text',                     false, NULL),
    (4,  'video_submissions', 'state',              'text',                     true,  '''sending'''),
    (5,  'video_submissions', 'http_status',        'integer',                  false, NULL),    -- of the API's last answer without a job; NULL: none came
    (6,  'video_submissions', 'unanswered',         'boolean',                  true,  'false'), -- a post of this key had no answer: it may have bought the job
    (7,  'video_submissions', 'last_error',         'text',                     false, NULL),
    (8,  'video_submissions', 'created_at',         'timestamp with time zone', true,  'now()'),
    (9,  'video_submissions', 'updated_at',         'timestamp with time zone', true,  'now()'),
    (10, 'read_budget',       'day',                'date',                     true,  NULL),
    (11, 'read_budget',       'reads',              'integer',                  true,  '0'),
    (12, 'video_jobs',        'leased_until',       'timestamp with time zone', true,  '''-infinity'''),
    (13, 'video_jobs',        'lease_id',           'uuid',                     true,  '''00000000-0000-0000-0000-000000000000'''),
    (14, 'video_jobs',        'lost_leases',        'integer',                  true,  '0'),
    (15, 'video_jobs',        'polls',              'integer',                  true,  '0'),
    (16, 'video_jobs',        'consecutive_errors', 'integer',                  true,  '0'),
    (17, 'video_jobs',        'not_found_answers',  'integer',                  true,  '0'),
    (18, 'video_jobs',        'failing_since',      'timestamp with time zone', false, NULL),
    (19, 'video_jobs',        'last_error',         'text',                     false, NULL),
    (20, 'video_jobs',        'last_polled_at',     'timestamp with time zone', false, NULL),
    (21, 'video_jobs',        'finished_at',        'timestamp with time zone', false, NULL),
    (22, 'video_jobs',        'created_at',         'timestamp with time zone', NULL,  NULL), -- a user's own may be NOT NULL
    (23, 'video_jobs',        'sume_status',        'text',                     false, NULL),
    (24, 'video_jobs',        'final_status',       'jsonb',                    false, NULL),
    (25, 'video_jobs',        'idempotency_key',    'text',                     false, NULL)
