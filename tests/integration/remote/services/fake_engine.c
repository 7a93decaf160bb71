/* FAKE engine: answers what a health check asks, and nothing else. With FAKE_BROKEN it ends, FAKE_SLOW are seconds. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *after(int count, char **words, const char *name, const char *usual) {
    for (int at = 1; at + 1 < count; at++)
        if (!strcmp(words[at], name)) return words[at + 1];
    return usual;
}

static void end(int number) { _exit(number == SIGTERM ? 0 : 1); }

int main(int count, char **words) {
    const char *alias = after(count, words, "--alias", after(count, words, "--served-model-name", "fake"));
    const char *broken = getenv("FAKE_BROKEN");
    struct sockaddr_in address = {.sin_family = AF_INET};
    int server = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    signal(SIGTERM, end);
    if (broken && *broken) {
        fprintf(stderr, "FAKE engine: broken, as it was asked to be\n");
        return 3;
    }
    if (getenv("FAKE_SLOW")) sleep(atoi(getenv("FAKE_SLOW")));
    address.sin_port = htons(atoi(after(count, words, "--port", "8000")));
    address.sin_addr.s_addr = inet_addr(after(count, words, "--host", "0.0.0.0"));
    setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 8)) {
        perror("bind");
        return 1;
    }
    printf("FAKE engine listens\n\033[31mred\xff\n");
    fflush(stdout);
    for (;;) {
        char in[8192], body[1024], out[2048];
        int client = accept(server, 0, 0);
        ssize_t got = read(client, in, sizeof in - 1);
        in[got > 0 ? got : 0] = 0;
        if (strstr(in, " /v1/models ")) snprintf(body, sizeof body, "{\"data\":[{\"id\":\"%s\"}]}", alias);
        else if (!strncmp(in, "POST ", 5)) snprintf(body, sizeof body, "{\"choices\":[{\"text\":\"FAKE\"}]}");
        else snprintf(body, sizeof body, "{}");
        snprintf(out, sizeof out,
                 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                 "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
        if (write(client, out, strlen(out)) < 0) perror("write");
        close(client);
    }
}
