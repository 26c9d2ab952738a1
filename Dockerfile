# Debian, not Alpine: Temporal's native worker core needs glibc.
FROM node:24.21.0-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build && npm prune --omit=dev --ignore-scripts --no-audit --no-fund

FROM node:24.21.0-bookworm-slim
# As the first line of the command says, which this entry point does not read.
ENV NODE_ENV=production MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=build --chown=root:root /build/package.json ./
COPY --from=build --chown=root:root /build/node_modules ./node_modules
COPY --from=build --chown=root:root /build/dist ./dist
USER node
EXPOSE 7400
ENTRYPOINT ["node", "dist/src/cli/main.js"]
CMD ["serve"]
