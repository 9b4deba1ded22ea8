# syntax=docker/dockerfile:1
# The image of controller, webhook and command line: docker build -t REPOSITORY/mpijob-elastic:0.4.0 .
# Tried on 2026-11-28 with buildah 1.28.2 and with Debian 12 and its Python 3.11 as PYTHON: every instruction ran, and
# `mpijob-elastic --help` ran in the image as user 65532. Nobody has built it with Docker or on the base below.
# `make image` makes a smaller image without Docker, with the same packages, user and entrypoint (lab/images/product).
# For a build that can be repeated bit by bit, give the base by digest (`docker buildx imagetools inspect` shows it):
#   --build-arg PYTHON=python:3.12.11-slim-bookworm@sha256:...
ARG PYTHON=python:3.12.11-slim-bookworm

FROM ${PYTHON} AS wheel
WORKDIR /source
COPY requirements/build.txt requirements/
RUN ["pip", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "--requirement", "requirements/build.txt"]
COPY pyproject.toml README.md LICENSE ./
COPY mpijob_elastic mpijob_elastic
COPY webhook webhook
COPY upgrade upgrade
RUN ["python", "-m", "hatchling", "build", "--target", "wheel", "--directory", "/wheel"]

FROM ${PYTHON} AS program
# Without pip: nothing is ever installed into a running image. Packages are compiled here, for the root is read-only there.
RUN ["python", "-m", "venv", "--without-pip", "/opt/mpijob-elastic"]
COPY requirements/runtime.txt /
RUN ["pip", "--python", "/opt/mpijob-elastic/bin/python", "install", "--no-cache-dir", "--require-hashes", "--only-binary", ":all:", "--requirement", "/runtime.txt"]
RUN --mount=from=wheel,source=/wheel,target=/wheel pip --python /opt/mpijob-elastic/bin/python install --no-cache-dir --no-deps --no-index /wheel/*.whl

FROM ${PYTHON}
COPY --from=program /opt/mpijob-elastic /opt/mpijob-elastic
ENV PATH=/opt/mpijob-elastic/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1
# By number, so that Kubernetes can check that it is not root.
USER 65532:65532
ENTRYPOINT ["mpijob-elastic"]
CMD ["--help"]
