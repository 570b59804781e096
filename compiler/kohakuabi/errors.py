# SPDX-License-Identifier: Apache-2.0
"""Errors of the artifact format."""

LAYER = "leaf"


class ArtifactError(ValueError):
    """An artifact that must not run; the message names the field, its value and the limit."""
