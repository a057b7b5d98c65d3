# docker build -t adalook . && docker run --rm -v "$PWD:/work" adalook solve 'zoo:maze?size=30&seed=0' --out maze
FROM python:3.11-slim
COPY . /source
RUN pip install --no-cache-dir --constraint /source/constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu \
    '/source[learn,frames]' && rm -rf /source
RUN useradd --create-home user
USER user
RUN adalook solve 'zoo:maze?size=10&seed=0' > /dev/null
WORKDIR /work
ENTRYPOINT ["adalook"]
