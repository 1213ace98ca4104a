-- The ids that a claim with the same arguments would try to lease.
{claim_due}
SELECT job_id FROM due
