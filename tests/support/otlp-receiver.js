// otlp-receiver.js - a collector for tests: decodes OTLP/HTTP with the decoder of OpenTelemetry.
//
//     NODE_PATH=build/node/node_modules node tests/support/otlp-receiver.js DIRECTORY
//
// Prints its URL. Each request becomes DIRECTORY/N.pb, as received, and each span a line of JSON in DIRECTORY/spans:
// ids, name, kind, times, status and attributes, and those of its resource.
// A request is refused if it is no export, or if the decoder's message encodes to another length: then it had a field
// that the decoder does not know, or one too often.
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const root = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

const directory = process.argv[2];
const hex = (bytes) => Buffer.from(bytes || []).toString('hex');
const flat = (attributes) => Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));
let requests = 0;

function receive(body) {
    const decoded = Request.decode(body);
    fs.writeFileSync(path.join(directory, `${++requests}.pb`), body);
    if (Request.encode(decoded).finish().length !== body.length)
        return 400;
    const message = Request.toObject(decoded, { longs: String, enums: String });
    const lines = message.resourceSpans.flatMap(({ resource, scopeSpans }) => scopeSpans.flatMap(({ scope, spans }) =>
        spans.map((span) => JSON.stringify({ ...span, traceId: hex(span.traceId), spanId: hex(span.spanId),
            parentSpanId: hex(span.parentSpanId), attributes: flat(span.attributes), scope,
            resource: flat(resource.attributes) }) + '\n')));
    fs.appendFileSync(path.join(directory, 'spans'), lines.join(''));
    return 200;
}

const server = http.createServer((request, response) => {
    const parts = [];
    const isExport = request.method === 'POST' && request.url === '/v1/traces' &&
        request.headers['content-type'] === 'application/x-protobuf';
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
        response.statusCode = isExport ? receive(Buffer.concat(parts)) : 400;
        response.setHeader('Content-Type', 'application/x-protobuf');
        response.end();
    });
});
server.listen(0, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${server.address().port}`));
