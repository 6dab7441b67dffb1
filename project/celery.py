"""The Celery application; it is configured by the CELERY_ settings in project.settings."""

import logging.config
import os
import warnings
from typing import Any

from celery import Celery
from celery.signals import heartbeat_sent, setup_logging, worker_init
from django_structlog.celery.steps import DjangoStructLogInitStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# The warning is about pickled messages; ours are JSON.
warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")

app = Celery("dramatis")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["project"])
# Adds the request id of the page or API request to the log lines of its jobs.
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect
def configure_celery_logging(**_: Any) -> None:
    """Use our logging configuration instead of Celery's, which has no request ids."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect
def enable_job_metrics(**_: Any) -> None:
    """Start counting jobs. Imported here, because only workers need it."""
    import project.metrics.collectors

    project.metrics.collectors.enable_worker_counters()


@heartbeat_sent.connect
def touch_worker_liveness(**_: Any) -> None:
    """Touch the liveness file from the event loop that also receives jobs: if it hangs, the file gets old."""
    from django.conf import settings

    from project.health.liveness import touch_liveness_file

    touch_liveness_file(settings.DRAMATIS_ALIVE_DIR, "worker")
