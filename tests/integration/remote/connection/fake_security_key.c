/* A FAKE security key for the real ssh: no device, the same answers (its interface is that of OpenSSH's
 * PROTOCOL.u2f). The handle of a key is its private half. It is touched when the file of FAKE_KEY_TOUCH is
 * there, and where a key wants a PIN that is the text of FAKE_KEY_PIN.
 *
 * cc -shared -fPIC -o fake_security_key.so fake_security_key.c -lcrypto
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#define VERSION 0x000a0000
#define ED25519 1
#define TOUCHED 0x01
#define VERIFIED 0x04
#define FAILED -1
#define UNSUPPORTED -2
#define PIN_REQUIRED -3
#define KEY_SIZE 32
#define SIGNATURE_SIZE 64

struct sk_enroll_response {
    uint8_t flags;
    uint8_t *public_key;
    size_t public_key_len;
    uint8_t *key_handle;
    size_t key_handle_len;
    uint8_t *signature;
    size_t signature_len;
    uint8_t *attestation_cert;
    size_t attestation_cert_len;
    uint8_t *authdata;
    size_t authdata_len;
};

struct sk_sign_response {
    uint8_t flags;
    uint32_t counter;
    uint8_t *sig_r;
    size_t sig_r_len;
    uint8_t *sig_s;
    size_t sig_s_len;
};

struct sk_option;
struct sk_resident_key;

uint32_t sk_api_version(void) {
    return VERSION;
}

static uint8_t *copied(const uint8_t *from, size_t size) {
    uint8_t *to = malloc(size);
    if (to != NULL)
        memcpy(to, from, size);
    return to;
}

int sk_enroll(uint32_t alg, const uint8_t *challenge, size_t challenge_len, const char *application,
              uint8_t flags, const char *pin, struct sk_option **options, struct sk_enroll_response **response) {
    (void)challenge, (void)challenge_len, (void)application, (void)pin, (void)options;
    uint8_t secret[KEY_SIZE], shown[KEY_SIZE];
    size_t size = sizeof shown;
    if (alg != ED25519)
        return UNSUPPORTED;
    if (RAND_bytes(secret, sizeof secret) != 1)
        return FAILED;
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, secret, sizeof secret);
    struct sk_enroll_response *made = calloc(1, sizeof *made);
    if (key == NULL || made == NULL || EVP_PKEY_get_raw_public_key(key, shown, &size) != 1)
        return FAILED;
    EVP_PKEY_free(key);
    made->flags = flags;
    made->public_key = copied(shown, sizeof shown);
    made->public_key_len = sizeof shown;
    made->key_handle = copied(secret, sizeof secret);
    made->key_handle_len = sizeof secret;
    made->signature = calloc(1, SIGNATURE_SIZE);
    made->signature_len = SIGNATURE_SIZE;
    *response = made;
    return 0;
}

static void wait_for_touch(void) {
    const char *file = getenv("FAKE_KEY_TOUCH");
    while (file != NULL && access(file, F_OK) != 0)
        usleep(50000);
}

int sk_sign(uint32_t alg, const uint8_t *data, size_t data_len, const char *application,
            const uint8_t *key_handle, size_t key_handle_len, uint8_t flags, const char *pin,
            struct sk_option **options, struct sk_sign_response **response) {
    (void)options;
    const char *wanted = getenv("FAKE_KEY_PIN");
    uint8_t message[SHA256_DIGEST_LENGTH * 2 + 5], signature[SIGNATURE_SIZE];
    size_t size = sizeof signature;
    if (alg != ED25519 || key_handle_len != KEY_SIZE)
        return UNSUPPORTED;
    if (flags & VERIFIED && (pin == NULL || wanted == NULL || strcmp(pin, wanted) != 0))
        return PIN_REQUIRED;
    if (flags & TOUCHED)
        wait_for_touch();
    /* What is signed: the application, flags, a counter of 1, and the data. */
    SHA256((const uint8_t *)application, strlen(application), message);
    memcpy(message + SHA256_DIGEST_LENGTH, (uint8_t[]){flags, 0, 0, 0, 1}, 5);
    SHA256(data, data_len, message + SHA256_DIGEST_LENGTH + 5);
    EVP_PKEY *key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, key_handle, key_handle_len);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    struct sk_sign_response *made = calloc(1, sizeof *made);
    if (key == NULL || context == NULL || made == NULL ||
        EVP_DigestSignInit(context, NULL, NULL, NULL, key) != 1 ||
        EVP_DigestSign(context, signature, &size, message, sizeof message) != 1)
        return FAILED;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    made->flags = flags;
    made->counter = 1;
    made->sig_r = copied(signature, size);
    made->sig_r_len = size;
    *response = made;
    return 0;
}

int sk_load_resident_keys(const char *pin, struct sk_option **options, struct sk_resident_key ***keys,
                          size_t *count) {
    (void)pin, (void)options, (void)keys, (void)count;
    return UNSUPPORTED;
}
