/* Counts what TLS connections cost either end, in nanoseconds of CPU.
 *
 *     cost process VERSION CIPHER KEYS HOW BYTES CONNECTIONS
 *     cost pauses  VERSION CIPHER KEYS HOW BYTES CONNECTIONS
 *     cost server  VERSION CIPHER KEYS HOW BYTES CONNECTIONS ADDRESS PORT
 *     cost client  VERSION CIPHER KEYS HOW BYTES CONNECTIONS ADDRESS PORT
 *
 * "process": both ends in this process, one after the other, through memory, as ssltest had it in 1997. "pauses": the
 * same, but it sleeps before each connection, so that others use the processor and its caches meanwhile. "server" and
 * "client": one end, the other is reached by TCP; TLS still reads from memory and writes to memory, so that the same
 * calls are timed and no system call for the network is among them. BYTES go each way.
 *
 * HOW is full, session-id, ticket, psk or 0rtt. All but full: the first connection is a full one, each later one
 * resumes the session that the one before left. A connection that was not resumed as asked ends the program.
 *
 * Out: a line for each connection: client's and server's CPU (an end that is not here has zeros) in five stages:
 *     setup    what the network does not see: SSL_new(), SSL_free(), closing
 *     hello    the client's first flight; with 0rtt its data are in it
 *     answers  reading a flight of the peer and writing the next of this end: what somebody waits for
 *     last     what is left of the handshake once this end's last flight of it is out: a Finished to check, tickets
 *     data     the bytes
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The first is used; TLS 1.2 wants the curve of an ECDSA key among them (RFC 8422 section 5.1). */
#define GROUPS "X25519:P-256"
enum { CHUNK = 1 << 16, MOST_EARLY = 1 << 20, PAUSE_US = 3000 };
enum stage { SETUP, HELLO, ANSWERS, LAST, DATA, STAGES };

struct end {
    SSL *tls;
    BIO *in, *out;
    struct end *peer; /* in this process; NULL: behind the socket */
    int socket;
    int serves, begun, early;
    size_t received;
    long answering; /* CPU since bytes of this end last left */
    long cpu[STAGES];
};

static SSL_SESSION *latest;
static char *data, scrap[CHUNK];

static void fail(const char *what) {
    fprintf(stderr, "cost: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static long cpu_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int keep_session(SSL *tls, SSL_SESSION *session) {
    (void)tls;
    SSL_SESSION_free(latest);
    latest = session;
    return 1;
}

static SSL_CTX *make_context(int serves, char **words) {
    const char *version = words[0], *cipher = words[1], *keys = words[2], *how = words[3];
    int number = strcmp(version, "1.3") ? TLS1_2_VERSION : TLS1_3_VERSION;
    SSL_CTX *context = SSL_CTX_new(serves ? TLS_server_method() : TLS_client_method());
    if (!context) fail("no context");
    SSL_CTX_set_security_level(context, 0); /* for NULL */
    SSL_CTX_set_min_proto_version(context, number);
    SSL_CTX_set_max_proto_version(context, number);
    int known = number == TLS1_3_VERSION ? SSL_CTX_set_ciphersuites(context, cipher)
                                         : SSL_CTX_set_cipher_list(context, cipher);
    if (!known || !SSL_CTX_set1_groups_list(context, GROUPS)) fail("cipher or group unknown");
    if (!strcmp(how, "session-id")) SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_session_id_context(context, (const unsigned char *)"cost", 4);
    SSL_CTX_set_session_cache_mode(context, serves ? SSL_SESS_CACHE_SERVER : SSL_SESS_CACHE_CLIENT);
    if (serves) {
        char path[4096];
        snprintf(path, sizeof path, "%s/server.crt", keys);
        if (SSL_CTX_use_certificate_file(context, path, SSL_FILETYPE_PEM) != 1) fail(path);
        snprintf(path, sizeof path, "%s/server.key", keys);
        if (SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) != 1) fail(path);
        if (!strcmp(how, "0rtt")) {
            SSL_CTX_set_max_early_data(context, MOST_EARLY);
            SSL_CTX_set_recv_max_early_data(context, MOST_EARLY);
        }
    } else {
        SSL_CTX_sess_set_new_cb(context, keep_session);
    }
    return context;
}

/* Makes one end ready; resumes: the client offers the latest session. */
static void set_up(struct end *end, SSL_CTX *context, int serves, int resumes, int early) {
    memset(end, 0, sizeof *end);
    end->serves = serves;
    end->early = early;
    end->socket = -1;
    long before = cpu_now();
    end->tls = SSL_new(context);
    end->in = BIO_new(BIO_s_mem());
    end->out = BIO_new(BIO_s_mem());
    SSL_set_bio(end->tls, end->in, end->out);
    if (serves) SSL_set_accept_state(end->tls);
    else SSL_set_connect_state(end->tls);
    if (resumes && !serves && (!latest || !SSL_set_session(end->tls, latest))) fail("no session to resume");
    end->cpu[SETUP] += cpu_now() - before;
}

static void free_end(struct end *end) {
    long before = cpu_now();
    SSL_free(end->tls);
    end->cpu[SETUP] += cpu_now() - before;
    if (end->socket >= 0) close(end->socket);
}

/* Moves what this end wrote to its peer; returns how many bytes. */
static size_t ship(struct end *end) {
    char *bytes;
    long size = BIO_get_mem_data(end->out, &bytes);
    if (size <= 0) return 0;
    if (end->peer) {
        BIO_write(end->peer->in, bytes, size);
    } else {
        for (long sent = 0; sent < size;) {
            ssize_t more = send(end->socket, bytes + sent, size - sent, MSG_NOSIGNAL);
            if (more < 0) fail("send");
            sent += more;
        }
    }
    (void)BIO_reset(end->out);
    return size;
}

/* Waits for bytes of a peer behind the socket; one in this process has given its own. */
static int fetch(struct end *end) {
    if (end->peer) return 1;
    ssize_t size = recv(end->socket, scrap, sizeof scrap, 0);
    if (size > 0) BIO_write(end->in, scrap, size);
    return size > 0;
}

static void judge(struct end *end, int result) {
    if (result <= 0 && SSL_get_error(end->tls, result) != SSL_ERROR_WANT_READ) fail("handshake");
}

/* Takes the handshake as far as the bytes that are there allow, and sends what it wrote. */
static void advance(struct end *end, size_t size) {
    size_t some;
    int first = !end->begun;
    long before = cpu_now();
    if (first && !end->serves && end->early) {
        if (SSL_write_early_data(end->tls, data, size, &some) != 1 || some != size) fail("early data not written");
    }
    if (end->serves && end->early) {
        int read;
        while ((read = SSL_read_early_data(end->tls, scrap, sizeof scrap, &some)) == SSL_READ_EARLY_DATA_SUCCESS)
            end->received += some;
        if (read == SSL_READ_EARLY_DATA_ERROR) judge(end, 0);
        else end->early = 0;
    }
    if (!(end->serves && end->early)) judge(end, SSL_do_handshake(end->tls));
    end->answering += cpu_now() - before;
    end->begun = 1;

    /* After a Finished of TLS 1.3 a server sends tickets, for which nobody waits. */
    int waited_for = !(end->serves && SSL_version(end->tls) == TLS1_3_VERSION && SSL_is_init_finished(end->tls));
    if (ship(end) && waited_for) {
        end->cpu[first && !end->serves ? HELLO : ANSWERS] += end->answering;
        end->answering = 0;
    }
    if (SSL_is_init_finished(end->tls)) {
        end->cpu[LAST] += end->answering;
        end->answering = 0;
    }
}

static void write_data(struct end *end, size_t size) {
    long before = cpu_now();
    if (SSL_write(end->tls, data, size) != (int)size) fail("data not written");
    end->cpu[DATA] += cpu_now() - before;
    ship(end);
}

/* Reads until size bytes have come. */
static void read_data(struct end *end, size_t size) {
    while (end->received < size) {
        long before = cpu_now();
        int some;
        while ((some = SSL_read(end->tls, scrap, sizeof scrap)) > 0) end->received += some;
        judge(end, some);
        end->cpu[DATA] += cpu_now() - before;
        if (end->received < size && (end->peer || !fetch(end))) fail("data missing");
    }
}

static void check(struct end *end, int resumes, int early) {
    if (SSL_session_reused(end->tls) != resumes) fail("not resumed as asked");
    if ((SSL_get_early_data_status(end->tls) == SSL_EARLY_DATA_ACCEPTED) != early) fail("early data not as asked");
}

/* Closes: the client says so first, so that neither end resets the connection. */
static void close_end(struct end *end) {
    long before = cpu_now();
    SSL_set_shutdown(end->tls, end->serves ? SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN : SSL_RECEIVED_SHUTDOWN);
    if (!end->serves) SSL_shutdown(end->tls);
    end->cpu[SETUP] += cpu_now() - before;
    ship(end);
    if (end->socket < 0) return;
    if (!end->serves) shutdown(end->socket, SHUT_WR);
    while (fetch(end)) {}
}

static void converse(struct end *client, struct end *server, int resumes, size_t size) {
    int early = client->early;
    while (!SSL_is_init_finished(client->tls) || !SSL_is_init_finished(server->tls)) {
        if (!SSL_is_init_finished(client->tls)) advance(client, size);
        advance(server, size);
    }
    if (!early) write_data(client, size);
    read_data(server, size);
    write_data(server, size);
    read_data(client, size);
    check(client, resumes, early);
    close_end(client);
    close_end(server);
}

static void converse_alone(struct end *end, int resumes, size_t size) {
    int early = end->early;
    if (!end->serves) advance(end, size);
    while (!SSL_is_init_finished(end->tls)) {
        if (!fetch(end)) fail("the peer has gone");
        advance(end, size);
    }
    if (end->serves) read_data(end, size);
    if (end->serves || !early) write_data(end, size);
    if (!end->serves) read_data(end, size);
    check(end, resumes, early);
    close_end(end);
}

static struct sockaddr_in address(char **words) {
    struct sockaddr_in found = {.sin_family = AF_INET, .sin_port = htons(atoi(words[1]))};
    if (inet_pton(AF_INET, words[0], &found.sin_addr) != 1) fail("no address");
    return found;
}

static int listening(struct sockaddr_in at) {
    int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 8)) fail("listen");
    return listener;
}

static int connected(int listener, struct sockaddr_in to) {
    int yes = 1, one = listener >= 0 ? accept(listener, NULL, NULL) : socket(AF_INET, SOCK_STREAM, 0);
    if (one < 0 || (listener < 0 && connect(one, (struct sockaddr *)&to, sizeof to))) fail("connect");
    setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    return one;
}

static void report(const struct end *client, const struct end *server) {
    for (int stage = 0; stage < STAGES; stage++) printf("%ld ", client->cpu[stage]);
    for (int stage = 0; stage < STAGES; stage++) printf("%ld ", server->cpu[stage]);
    printf("\n");
    fflush(stdout);
}

int main(int count, char **words) {
    if (count != 8 && count != 10) fail("wrong number of words; the file says how");
    int serves = !strcmp(words[1], "server"), alone = count == 10;
    const char *how = words[5];
    size_t size = strtoul(words[6], NULL, 10);
    long connections = strtol(words[7], NULL, 10);
    SSL_CTX *client_context = make_context(0, words + 2), *server_context = make_context(1, words + 2);
    data = calloc(1, size);
    struct sockaddr_in at = {0};
    if (alone) at = address(words + 8);
    int listener = serves ? listening(at) : -1;

    for (long number = 0; number < connections; number++) {
        int resumes = number && strcmp(how, "full"), early = resumes && !strcmp(how, "0rtt");
        if (!strcmp(words[1], "pauses")) usleep(PAUSE_US);
        struct end client = {0}, server = {0}, *here = serves ? &server : &client;
        if (!serves) set_up(&client, client_context, 0, resumes, early);
        if (serves || !alone) set_up(&server, server_context, 1, resumes, early);
        if (alone) {
            here->socket = connected(listener, at);
            converse_alone(here, resumes, size);
            free_end(here);
        } else {
            client.peer = &server;
            server.peer = &client;
            converse(&client, &server, resumes, size);
            free_end(&client);
            free_end(&server);
        }
        report(&client, &server);
    }
    return 0;
}
