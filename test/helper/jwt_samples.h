/* jwt_samples: keys and tokens that another implementation made (Python's cryptography), for the
 * tests of tokens. Their time is JWT_NOW, and they are valid for ten minutes. The private keys
 * are gone.
 */
#ifndef WEIR_TEST_HELPER_JWT_SAMPLES_H
#define WEIR_TEST_HELPER_JWT_SAMPLES_H

#define JWT_NOW INT64_C(1700000000)
#define JWT_ISSUER "https://id.example"
#define JWT_AUDIENCE "nimi"

/* clang-format off */

/* r1 is RSA with 2,048 bits, e1 is on P-256. */
#define JWT_KEYS \
    "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"r1\",\"use\":\"sig\",\"alg\":\"RS256\",\"n" \
    "\":\"5jrmIxceHnjmqjirF8am7qVhhPr-3i84JL_wJXO4tcP2x8wc_FFDlVhxZjS9EUSZ7gJmPPRX1Pm" \
    "3lND5j_TBpNp6Tju5FKiSY3uBHul_m2ecJTZJl89j1fEoFk5DGx6v8cflV2wBKh4m_65NbmVwiThrNIM" \
    "YPhOmmnDZ2PLApFMmR3IqjmzS1yVFWlt_dLTv7sdZiFNqpE1ADTQRAOHXt4BAZG6rzm-7UN-NXejq1vX" \
    "EKrgCTcDkFNFg51f0Wgq53G0qjEBjqEgJHnRcZH-82FVMj9CCUPCrc1Hbe7Oy1GOBHM9hRLKpzyxwt80" \
    "5VPBdErHAJftNfGk_9g1M9DkUow\",\"e\":\"AQAB\"},{\"kty\":\"EC\",\"kid\":\"e1\",\"c" \
    "rv\":\"P-256\",\"x\":\"-ZVJtVf-wHVywPbt-jMTXW6G7J-pq5Q5ivUPXI2Q9Vo\",\"y\":\"OrW" \
    "B9zds2Rb1ri5O20HSBk02UIq1vRF8SJB9xWxxr9I\"}]}"

/* The point of e1. */
#define JWT_EC_X "-ZVJtVf-wHVywPbt-jMTXW6G7J-pq5Q5ivUPXI2Q9Vo"
#define JWT_EC_Y "OrWB9zds2Rb1ri5O20HSBk02UIq1vRF8SJB9xWxxr9I"

/* w1 is RSA with 1,024 bits. */
#define JWT_WEAK_KEYS \
    "{\"keys\":[{\"kty\":\"RSA\",\"kid\":\"w1\",\"n\":\"sp8AYBYLJl6hB6Hp0BBkc62eD-jVo" \
    "OyiB60n0qxU0CAMSvD54PSAj03I2qUCKJAPuU5tyDUiUi7oatrNHI0_Cbq0r0ToePKWMp84PE9uLyLLH" \
    "py7SDJElUNms7KUjGpUu2WjG_M9r3Jy7-UeIEksAgMn5DXKkZtn4POT_KyPxUs\",\"e\":\"AQAB\"}" \
    "]}"

/* RS256 by r1, for nimi, subject anna */
#define JWT_RSA_TOKEN \
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIiwidHlwIjoiSldUIn0.eyJpc3MiOiJodHRwczovL2lkLmV4" \
    "YW1wbGUiLCJhdWQiOiJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAw" \
    "MDAwNjAwLCJzY29wZSI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.FIKGSvq2ZpXhZa2NJ1q" \
    "OU3yhH5FggMblasD6ZQR3p7-oiQd9owPUM9ENbGdC2qnvKcPLvOGvHZJeLl9BGTLFutAvcsvpwYilfkD" \
    "n8yPv1QLCwbgqvnFSOFIfm_y-35LG0Kkq8KXubXhGWrLZnSEqsqqzNUs3jl5mWw8jXyYrWjfMHBGcJqs" \
    "U0Cpgtuv0YfhXejYI5SITfKShqFGT3lpIUZJkE_GJvdjBiDGMInUQC4htz2ayJobJsPu61XWeN6i01S9" \
    "o7tjtKYsF8nn2WgTCZYlnNoJtyXP-O11xCfFnGLqQzlfp-OPObY_LLc6YNIw-FTGTCT8XL4Uyirfl6Zb" \
    "bhg"

/* ES256 by e1, for other and nimi */
#define JWT_EC_TOKEN \
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImUxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "Olsib3RoZXIiLCJuaW1pIl0sInN1YiI6ImFubmEiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAw" \
    "MDYwMCwic2NvcGUiOiJydW50aW1lLmF1ZGl0LmV4cG9ydCBvcGVuaWQifQ.6Q86w1HKUCaqUKyYBKiC_" \
    "gsFKby2xUdjJ-1_4ZBuf-PbsW66m1evizwm9Jj2wwup8FIU9Y56fTgTmvlzu6rNHA"

/* e1 is named, another key signed */
#define JWT_EC_OTHER_KEY \
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImUxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "OiJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwNjAwLCJzY29w" \
    "ZSI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.X1cHspzkGO5en4LlndHGPvzuLXaMYRS_7iq" \
    "OvM5SbIbxABIEUDlpx8eOX_nu2adfsamDsHQ9HwrwP6Un8aT6IA"

/* HS256 with r1's public key, as PEM, as the secret */
#define JWT_HS_TOKEN \
    "eyJhbGciOiJIUzI1NiIsImtpZCI6InIxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "OiJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwNjAwLCJzY29w" \
    "ZSI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.GbXS9aOSVogBabZUZpgCOUZLsV6fr_MNmXL" \
    "xc6tYyw4"

/* alg none */
#define JWT_NONE_TOKEN \
    "eyJhbGciOiJub25lIiwia2lkIjoicjEifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiO" \
    "iJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwNjAwLCJzY29wZ" \
    "SI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.eA"

/* ES256 by e1, naming r1 */
#define JWT_WRONG_ALG \
    "eyJhbGciOiJFUzI1NiIsImtpZCI6InIxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "OiJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwNjAwLCJzY29w" \
    "ZSI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.iAhjQ-roPi3LB98BkoCct2FdD63Z5vEqDJW" \
    "DRR3LpgdaZZFr2BSKPJoh5a-3uMF_6ANtPAu47vww7Fhbmgzl2Q"

/* RS256 by r1, naming r2 */
#define JWT_UNKNOWN_KID \
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIyIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "OiJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwNjAwLCJzY29w" \
    "ZSI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.i63wqSs_8_B6U3b5sA8DvBIO5vWepLgG23Q" \
    "LvviIiyAfv-VUKF4DcDrwX2Nb0abIbPmVg4LcMYjNVVYyQxNh5NCKNaJU1Zf7wrdRol6R1EitxzJ3ZxO" \
    "cWslimAckpTQuxHwpBNXgesBWyZblAj1MjdThwigcJp_3z3uOZ2UE1OYZfrNygEp5h_KqVAojlJkeHmT" \
    "mAScy26vCI6RBZYAfl2wZLEBHl8fi2VaBgxOrvBKkMHif9lWNlJqQ9RE0CnZKZNiGbjCz7_phgqd6NxG" \
    "wHoFIUwthw72jq29FZ-8i3WyHKYwPaP4TGzsy3CC3jfo9MACCPcT3Ig2MggamyPXhew"

/* RS256 by w1 */
#define JWT_WEAK_TOKEN \
    "eyJhbGciOiJSUzI1NiIsImtpZCI6IncxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "OiJuaW1pIiwic3ViIjoiYW5uYSIsImlhdCI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwNjAwLCJzY29w" \
    "ZSI6InJ1bnRpbWUuYXVkaXQuZXhwb3J0IG9wZW5pZCJ9.lHTttuXAEWakBzf0HsseM2aas_Ijx2pviOg" \
    "Qjeusy_7JvcjFiYz_rd_J7HdkPykqfhC7X_yV9wr-oT_wjZSZxp3eG4wUFfd5E6NZbx2vyDBE0HzqUxC" \
    "WMcFNM0uYFPVnULTTyzlThCOpSeYKGG5kmjk3HA3IvIxVo7-NgiFtFdk"

/* iss with a slash at its end */
#define JWT_OTHER_ISSUER \
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUvIiwiYXVk" \
    "IjoibmltaSIsInN1YiI6ImFubmEiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMDYwMCwic2Nv" \
    "cGUiOiJydW50aW1lLmF1ZGl0LmV4cG9ydCBvcGVuaWQifQ.Ow26-KgC8S5a_dORQOBOZ2bDHS6cNkE0z" \
    "zwrfky7W8ZNb4Q5ZM42cVYfUL0sgR3aWB29DPDdNSU4hr4h7623wpHwV9KEtgfKIkw5pz-coq9uUNLL5" \
    "vOMJUAi6Dpp2lLglolrq_pJDWRIUzSen783uL5CcR2fvldQJkWMJjE_RfprF1upVOsZe69oc2oiXbHzV" \
    "y-7Wazhfv6H649bzeynN8FoEuZOZj1YDnwYkSEgJ7qJyNhOTJk7KOwJCgVOzSf2Cq3fH6srRvSgfrxRV" \
    "Qc9wpbkIDnzFHzzIGnG6sTu4eEsE9qkBd73ePkTSJLDQFJE4AOFIlpC1o0nVR6jKqRPJw"

/* aud is an array without nimi */
#define JWT_OTHER_AUDIENCE \
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIxIn0.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQi" \
    "OlsibmltaTIiLCJ4Il0sInN1YiI6ImFubmEiLCJpYXQiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMDYw" \
    "MCwic2NvcGUiOiJydW50aW1lLmF1ZGl0LmV4cG9ydCBvcGVuaWQifQ.D-doO3Yg3hvWGeF9bNqvwpBqG" \
    "8mnWF2x5TNoguwcQwcWolY3x6ewrmto2pm8qKLVQqwdShDZcZeaNVKhoWctYQwL3r1rFtL0L72Rqyyg3" \
    "Ry4BxV4Y3WV56gB5iUoc0sIURcKylzGewg5rLpCFMqLkt8ec120FMDKAg9AiGnnoc1QAsge7lXwLvOmu" \
    "iKI-woqbPCygqI6fUqIJ-fOfaXSbdq1WsFt17Iyj3Elf8LhLdvBqrS_GfaaT65-H3xBuXC4VtgN66pz2" \
    "WvMmCfQ5J7mDeUoRzqEMZ6H-RG0JxClkrZaNFFA4ywvGK7-z9jUhoUarBhIO_FXFCLO__O19WwFcg"

/* clang-format on */

#endif
