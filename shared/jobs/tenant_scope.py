"""Which jobs and batches a client may see: those of one tenant, or all. Changes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis
from redis.exceptions import ResponseError

from shared.errors import NotFoundError
from shared.jobs.codec import text
from shared.jobs.fields import damage
from shared.jobs.keys import BatchKeys, JobKeys


class TenantScope:
    """The jobs of `tenant`, and the batches that it has opened; None: everybody's.

    What is another's is answered as what does not exist, by the same error after the same one command: neither the
    sentence nor the time tells the two apart. May raise redis.exceptions.RedisError.
    """

    def __init__(self, client: Redis, tenant: str | None = None) -> None:
        self._client, self.tenant = client, tenant

    def check_job(self, job_id: str) -> None:
        """Raises: NotFoundError for a job that is not the tenant's, or that there is not."""
        if not self._owns(JobKeys(job_id).job):
            raise no_such_job(job_id)

    def own_jobs(self, job_ids: Sequence[str]) -> list[str]:
        """Those of these jobs that are the tenant's, in one round trip; all of them where it is nobody's."""
        if self.tenant is None:
            return list(job_ids)
        with self._client.pipeline(transaction=False) as pipe:
            for job_id in job_ids:
                pipe.hget(JobKeys(job_id).job, "tenant")
            owners = pipe.execute(raise_on_error=False)
        own = {self.tenant, self.tenant.encode()}
        return [job_id for job_id, owner in zip(job_ids, owners, strict=True) if owner in own]

    def check_batch(self, batch_id: str, *, nobodys: bool = False) -> None:
        """Raises: NotFoundError for a batch that is not the tenant's, or that there is not.

        `nobodys`: one that a client of all tenants has opened will do.
        """
        if not self._owns(BatchKeys(batch_id).batch, nobodys=nobodys):
            raise no_such_batch(batch_id)

    def _owns(self, key: str, *, nobodys: bool = False) -> bool:
        if self.tenant is None:
            return True
        try:
            owner, made = self._client.hmget(key, ["tenant", "created_at"])
        except ResponseError as error:
            if damage(error) is None:
                raise
            return False  # a key of another type says nothing of its owner
        return text(owner) == self.tenant if owner is not None else nobodys and made is not None


def no_such_job(job_id: str) -> NotFoundError:
    """The error for an id under which there is no job."""
    return NotFoundError("job id", job_id, "there is no such job, or it has expired; `ramify jobs` lists them")


def no_such_batch(batch_id: str) -> NotFoundError:
    """The error for an id under which there is no batch."""
    return NotFoundError("batch id", batch_id, "there is no such batch, or it has expired")
