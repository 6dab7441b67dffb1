"""The Celery application; its settings are the CELERY_ ones of project.settings."""

import logging.config
import os
import warnings
from typing import Any

from celery import Celery
from celery.signals import heartbeat_sent, setup_logging, worker_init
from django_structlog.celery.steps import DjangoStructLogInitStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

# It warns root of pickled jobs; ours are JSON.
warnings.filterwarnings("ignore", message="You're running the worker with superuser privileges")

app = Celery("dramatis")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["project"])
# Carries the request id of the page or call into the log lines of the jobs it caused.
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect
def configure_celery_logging(**_: Any) -> None:
    """Stop Celery from bringing its own log format, which knows no request ids."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)


@worker_init.connect
def enable_job_metrics(**_: Any) -> None:
    """Only workers run jobs; everybody else is spared the import."""
    import project.metrics.collectors

    project.metrics.collectors.enable_worker_counters()


@heartbeat_sent.connect
def touch_worker_liveness(**_: Any) -> None:
    """By the loop that also takes jobs: where it hangs, the sign grows old."""
    from django.conf import settings

    from project.health.liveness import touch_liveness_file

    touch_liveness_file(settings.DRAMATIS_ALIVE_DIR, "worker")
