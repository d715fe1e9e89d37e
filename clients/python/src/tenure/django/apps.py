"""The Django app, which brings the command and no models."""

from __future__ import annotations

from django.apps import AppConfig


class TenureConfig(AppConfig):
    """Tenure, under a label that says so: by default it would be `django`."""

    name = "tenure.django"
    label = "tenure"
