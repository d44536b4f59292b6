# The decision service.  Build: docker build -t polyarm .   Run: docker run -p 8000:8000 -v polyarm:/data polyarm
FROM python:3.12-slim AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/polyarm \
 && /opt/polyarm/bin/pip install --no-cache-dir --constraint constraints.txt '.[service]'

FROM python:3.12-slim
COPY --from=build /opt/polyarm /opt/polyarm
ENV PATH=/opt/polyarm/bin:$PATH POLYARM_CACHE_DIR=/opt/polyarm/kernels PYTHONUNBUFFERED=1
RUN useradd --create-home --uid 10001 polyarm \
 && mkdir -p /data /opt/polyarm/kernels && chown polyarm /data /opt/polyarm/kernels && chmod 700 /opt/polyarm/kernels
USER polyarm
RUN polyarm warm
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz')"
# A key must exist before the service listens beyond loopback: docker run ... polyarm keys add ops --scope admin --database /data/polyarm.db
ENTRYPOINT ["polyarm"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8000", "--database", "/data/polyarm.db"]
