/* A library for LD_PRELOAD that makes local servers listen on the loopback
 * interface only.
 *
 * TensorFlow's servers have no authentication, and listen on every interface,
 * whatever address their cluster gives. This library replaces an address that
 * means "every interface" by the loopback. Other addresses stay.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

typedef int (*BindFunction)(int, const struct sockaddr*, socklen_t);

/* The loopback as an IPv4 address in an IPv6 socket. IPv4 clients cannot
 * connect to ::1. */
static const struct in6_addr kLoopback = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}}};
/* 0.0.0.0 in an IPv6 socket. */
static const struct in6_addr kAny4 = {
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0}}};

static int IsAny(const struct in6_addr* address) {
  return memcmp(address, &in6addr_any, sizeof(*address)) == 0 ||
         memcmp(address, &kAny4, sizeof(*address)) == 0;
}

int bind(int socket, const struct sockaddr* address, socklen_t length) {
  BindFunction next = (BindFunction)dlsym(RTLD_NEXT, "bind");
  if (address && address->sa_family == AF_INET &&
      length >= sizeof(struct sockaddr_in)) {
    struct sockaddr_in local;
    memcpy(&local, address, sizeof(local));
    if (local.sin_addr.s_addr == htonl(INADDR_ANY)) {
      local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    return next(socket, (const struct sockaddr*)&local, sizeof(local));
  }
  if (address && address->sa_family == AF_INET6 &&
      length >= sizeof(struct sockaddr_in6)) {
    struct sockaddr_in6 local;
    memcpy(&local, address, sizeof(local));
    if (IsAny(&local.sin6_addr)) local.sin6_addr = kLoopback;
    return next(socket, (const struct sockaddr*)&local, sizeof(local));
  }
  return next(socket, address, length);
}
