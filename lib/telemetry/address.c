/* address.c - see address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

#define HOST_MAX 64u

/* Parses 1 to 5 digits, 0 to 65535, which must be the whole text. */
static bool port_parse(const char *text, in_port_t *port)
{
    uint32_t number = 0;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || digits > 5 || text[digits] != '\0')
        return false;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (uint32_t)(text[i] - '0');
    *port = htons((uint16_t)number);
    return number <= UINT16_MAX;
}

static bool address_parse_v6(const char *host, in_port_t port, struct telemetry_address *address)
{
    struct sockaddr_in6 in = {.sin6_family = AF_INET6, .sin6_port = port};
    if (inet_pton(AF_INET6, host, &in.sin6_addr) != 1)
        return false;
    memcpy(&address->socket, &in, sizeof in);
    address->length = sizeof in;
    return true;
}

static bool address_parse_v4(const char *host, in_port_t port, struct telemetry_address *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (host[0] != '\0' && strcmp(host, "localhost") != 0 && inet_pton(AF_INET, host, &in.sin_addr) != 1)
        return false;
    memcpy(&address->socket, &in, sizeof in);
    address->length = sizeof in;
    return true;
}

bool telemetry_address_parse(const char *text, struct telemetry_address *address)
{
    const char *colon = strrchr(text, ':');
    char host[HOST_MAX];
    in_port_t port;
    memset(address, 0, sizeof *address);
    if (colon == NULL || (size_t)(colon - text) >= sizeof host || !port_parse(colon + 1, &port))
        return false;
    size_t length = (size_t)(colon - text);
    memcpy(host, text, length);
    host[length] = '\0';
    if (host[0] != '[')
        return address_parse_v4(host, port, address);
    if (host[length - 1] != ']')
        return false;
    host[length - 1] = '\0';
    return address_parse_v6(host + 1, port, address);
}
