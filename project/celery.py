"""The Celery application; it is configured by the CELERY_ settings in project.settings."""

import logging.config
import os
import warnings
from typing import Any

from celery import Celery
from celery.signals import heartbeat_sent, setup_logging, worker_init, worker_process_init
from django_structlog.celery.steps import DjangoStructLogInitStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# Celery warns about running as root because of pickled messages. Our messages are JSON.
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
    """Start counting jobs. The module is imported here, because only workers need it."""
    import project.metrics.collectors

    project.metrics.collectors.enable_worker_counters()


@worker_process_init.connect
def tune_worker_process(**_: Any) -> None:
    from core.garbage_collection import tune_garbage_collection

    tune_garbage_collection()


@heartbeat_sent.connect
def touch_worker_liveness(**_: Any) -> None:
    """Touch the liveness file of the worker at each Celery heartbeat.

    Heartbeats are sent by the event loop that also receives jobs: if it hangs, the file is no longer touched.
    """
    from django.conf import settings

    from project.health.liveness import touch_liveness_file

    touch_liveness_file(settings.DRAMATIS_ALIVE_DIR, "worker")
