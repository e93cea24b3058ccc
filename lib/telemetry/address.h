/* address.h - parses the address on which the server of /metrics listens. Pure. */
#ifndef TELEMETRY_ADDRESS_H
#define TELEMETRY_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#define TELEMETRY_ADDRESS_WANT                                                                                         \
    "a numeric address and a port, as 127.0.0.1:9464, [::1]:9464, or :9464 for 127.0.0.1; port 0 is any free port"

struct telemetry_address {
    struct sockaddr_storage socket;
    socklen_t length;
};

/* Returns false if the text is no such address. */
bool telemetry_address_parse(const char *text, struct telemetry_address *address);

#endif
