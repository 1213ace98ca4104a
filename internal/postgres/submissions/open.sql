-- Writes the intent of a new key. The request is a json column, which keeps it
-- verbatim; what is returned is what the column holds.
INSERT INTO video_submissions (idempotency_key, request, state)
VALUES (@key::text, @request::text::json, 'sending')
ON CONFLICT (idempotency_key) DO NOTHING
RETURNING request::text
