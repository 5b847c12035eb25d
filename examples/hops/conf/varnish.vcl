# Varnish as a proxy that caches nothing. proxies.py writes the @NAMES@.
vcl 4.1;

backend shop {
    .host = "@ADDRESS@";
    .port = "@PORT@";
}

sub vcl_recv {
    return (pass);
}

sub vcl_backend_fetch {
    @DIRECTIVES@
}
