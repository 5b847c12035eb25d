/* Has a server that uses OpenSSL write its TLS secrets to the file SSLKEYLOGFILE names: LD_PRELOAD=secrets.so SERVER
 *
 * For clients that write none. Servers do not ask OpenSSL for them, so every SSL_CTX_new() is made to. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *secrets;

static void write_line(const SSL *connection, const char *line) {
    (void)connection;
    fprintf(secrets, "%s\n", line);
    fflush(secrets);
}

SSL_CTX *SSL_CTX_new(const SSL_METHOD *method) {
    SSL_CTX *(*make)(const SSL_METHOD *) = (SSL_CTX * (*)(const SSL_METHOD *)) dlsym(RTLD_NEXT, "SSL_CTX_new");
    SSL_CTX *context = make(method);
    if (!secrets && getenv("SSLKEYLOGFILE")) secrets = fopen(getenv("SSLKEYLOGFILE"), "a");
    if (context && secrets) SSL_CTX_set_keylog_callback(context, write_line);
    return context;
}
