"""Records of the log that carry the job whose handler made them."""

from __future__ import annotations

import logging

from .middleware import current


class JobFilter(logging.Filter):
    """Gives each record the id of the job whose handler logs it, as `job_id`; otherwise `-`.

    Put it on a handler of the log, and `%(job_id)s` into its format. The worker of the command line
    has it on its own. A thread that a handler starts by itself does not know its job.

    >>> handler = logging.StreamHandler()
    >>> handler.addFilter(JobFilter())
    >>> handler.setFormatter(logging.Formatter("%(job_id)s %(message)s"))
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add `job_id` to a record, and let it pass."""
        try:
            record.job_id = current().job.id
        except LookupError:
            record.job_id = "-"
        return True
