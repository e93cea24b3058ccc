// otlp-receiver.js - a collector for tests: decodes OTLP/HTTP with the decoder of OpenTelemetry.
//
//     NODE_PATH=build/node/node_modules node tests/support/otlp-receiver.js DIRECTORY
//
// Prints its URL. Each export becomes DIRECTORY/N.trace.pb or N.metrics.pb, as received; each span a line of JSON in
// DIRECTORY/spans (ids, name, kind, times, status, attributes, those of its resource), each data point a line in
// DIRECTORY/points (number of the export, name and unit of the metric, attributes, value).
// A request is refused if it is no export, or if the decoder's message encodes to another length: then it had a field
// that the decoder does not know, or one too often.
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const collector = require('@opentelemetry/otlp-transformer/build/src/generated/root.js').opentelemetry.proto.collector;

const directory = process.argv[2];
const hex = (bytes) => Buffer.from(bytes || []).toString('hex');
const flat = (list) => Object.fromEntries((list || []).map(({ key, value }) => [key, Object.values(value)[0]]));
let requests = 0;

const spans = ({ resource, scopeSpans }) => scopeSpans.flatMap(({ scope, spans: list }) => list.map((span) => ({
    ...span, traceId: hex(span.traceId), spanId: hex(span.spanId), parentSpanId: hex(span.parentSpanId),
    attributes: flat(span.attributes), scope, resource: flat(resource.attributes) })));
const points = ({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics.flatMap(
    ({ name, unit, sum, gauge, histogram }) => (sum || gauge || histogram).dataPoints.map((point) => ({
        request: requests, name, unit, attributes: flat(point.attributes),
        value: Number(point.count ?? point.asInt ?? point.asDouble ?? 0) }))));

const signals = {
    '/v1/traces': { name: 'trace', type: collector.trace.v1.ExportTraceServiceRequest, file: 'spans',
        lines: (message) => message.resourceSpans.flatMap(spans) },
    '/v1/metrics': { name: 'metrics', type: collector.metrics.v1.ExportMetricsServiceRequest, file: 'points',
        lines: (message) => message.resourceMetrics.flatMap(points) },
};

// Returns the status of the response.
function receive(signal, body) {
    fs.writeFileSync(path.join(directory, `${++requests}.${signal.name}.pb`), body);
    const decoded = signal.type.decode(body);
    if (signal.type.encode(decoded).finish().length !== body.length)
        return 400;
    const lines = signal.lines(signal.type.toObject(decoded, { longs: String, enums: String }));
    fs.appendFileSync(path.join(directory, signal.file), lines.map((line) => JSON.stringify(line) + '\n').join(''));
    return 200;
}

const server = http.createServer((request, response) => {
    const parts = [];
    const isExport = request.method === 'POST' && request.headers['content-type'] === 'application/x-protobuf';
    const signal = isExport && signals[request.url];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
        response.statusCode = signal ? receive(signal, Buffer.concat(parts)) : 400;
        response.setHeader('Content-Type', 'application/x-protobuf');
        response.end();
    });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
